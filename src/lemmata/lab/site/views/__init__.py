"""The pages: one file per group, each with a `router`. The app finds them by listing this folder."""
