"""What sections of the configuration are made of: values, secrets, schedules, expressions."""
