"""The processes of the sandbox: helper, keeper, spawner, and the runs that the spawner starts and ends."""
