"""The default learner: experts over past releases, mixed by what each release shows."""
