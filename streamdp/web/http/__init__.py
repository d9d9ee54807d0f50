"""Requests and answers: who may ask, what a parameter may be, which headers go out."""
