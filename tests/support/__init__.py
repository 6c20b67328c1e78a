"""What tests share: repositories, commands, servers, people, and stand-ins for programs and forges."""
