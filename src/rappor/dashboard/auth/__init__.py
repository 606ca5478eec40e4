"""Who may open what: roles, sessions, and the check of every form."""
