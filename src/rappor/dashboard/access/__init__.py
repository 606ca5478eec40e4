"""Who may open what: roles, tokens, one-time links, sessions, and the check of every form."""
