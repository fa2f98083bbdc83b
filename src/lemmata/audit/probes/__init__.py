"""One probe = one file: a function that is given the subject and a clock, and yields what it found."""
