"""Tables in folders: which files hold the records of the newest version of a table."""
