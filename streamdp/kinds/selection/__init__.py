"""Release kind `selection`: a private choice among public candidates."""
