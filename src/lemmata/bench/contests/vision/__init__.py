"""Contests of filters, restoration and image quality."""
