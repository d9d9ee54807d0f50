"""Requests and responses: access, parameters, headers; knows nothing of the store."""
