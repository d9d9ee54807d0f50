"""The state of daemon, sources, jobs and gates, and what holds a job back."""
