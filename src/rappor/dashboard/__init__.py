"""Web pages for analysts, operators and privacy officers, served by their own process."""
