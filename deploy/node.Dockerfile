# A node of the service: the image of the agents with Cofferdam's binary in it.
#
#   cargo build --release -p cofferdam
#   cofferdam sandbox build-image
#   docker build --file deploy/node.Dockerfile --tag cofferdam/node target/x86_64-unknown-linux-gnu/release
#
# The context is the folder of the binary, which is statically linked.
ARG WORKER=cofferdam/worker:latest
FROM ${WORKER}
USER root
COPY --chmod=0755 cofferdam /usr/local/bin/cofferdam
ENV COFFERDAM_HOME=/var/lib/cofferdam
VOLUME /var/lib/cofferdam
EXPOSE 8787
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/cofferdam"]
CMD ["serve", "--listen", "0.0.0.0:8787"]
