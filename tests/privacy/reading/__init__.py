"""Reading as an attacker would look at it: one record more, and what is published of both."""
