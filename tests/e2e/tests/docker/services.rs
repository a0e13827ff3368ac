//! Services of the host, reached from a container.
