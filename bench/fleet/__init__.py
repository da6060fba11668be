"""A fleet of real processes under kills, freezes, partitions and load: `./just fleet-test`."""
