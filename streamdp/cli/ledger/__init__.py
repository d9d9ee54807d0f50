"""Commands of budget and evidence: caps, statements, verification, copies and their return."""
