"""Assembly, supervision, errors and security of the broker."""
