"""The lab page: a local server that shows the catalogue and runs it. `app` puts it together, `views/` has the pages."""
