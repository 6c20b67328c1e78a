"""What tests share: repositories, commands, servers, people, and stand-ins for programs and forges."""

# How many seconds a test waits for what another process or thread does. A machine may be slow, and whoever gets what was
# waited for waits no longer; each wait of the tests is this one, unless the time itself is what is tested.
PATIENCE = 60
