"""What tests share: servers, clients, small data sets."""
