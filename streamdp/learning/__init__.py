"""What is learned from past releases; nothing here has ever seen data."""
