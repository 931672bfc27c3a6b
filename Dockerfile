# syntax=docker/dockerfile:1
# kvdyno with all its engines: `docker build -t kvdyno .` (docs/install.md). `docker build --target dist --output dist .`
# writes the archive and the Debian package of a release instead.

FROM golang:1.26-bookworm AS go

FROM rust:1.95-bookworm AS build
COPY --from=go /usr/local/go /usr/local/go
# With CI=true, a plug-in that does not build is an error.
ENV PATH=/usr/local/cargo/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CI=true
RUN cargo install cargo-deb --locked --version 3.8.0
WORKDIR /src
# The packages of the Makefile; the second call prints those that are still missing.
COPY Makefile ./
COPY scripts/packages.sh scripts/
RUN make packages && test -z "$(NO_INSTALL=1 make packages 2>&1)"
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/root/go make archive deb

FROM scratch AS dist
COPY --from=build /src/dist/ /

FROM debian:bookworm-slim
# The package has the shared libraries of the engines as dependencies. Debian's servers remove old versions, so versions are
# not pinned.
# hadolint ignore=DL3008
RUN --mount=type=bind,from=build,source=/src/dist,target=/dist \
    apt-get update \
    && apt-get install -y --no-install-recommends /dist/*.deb redis-server \
    && rm -rf /var/lib/apt/lists/*
# Databases and results are written here: mount a volume of the disk that is to be measured.
WORKDIR /data
VOLUME /data
ENTRYPOINT ["kvdyno"]
