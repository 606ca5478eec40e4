pytest_plugins = ["rappor.testing.fixtures"]
