# syntax=docker/dockerfile:1
# The container image of Evenkeel: a static binary, certificate authorities, and nothing else. To build and try it:
#
#   docker build --tag evenkeel .
#   docker run --rm evenkeel demo
#
# For both architectures, without emulation:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag evenkeel .
#
# `cargo xtask image-root` makes the files of the image, here and in `cargo xtask dist`, which tries them without Docker.

FROM --platform=$BUILDPLATFORM rust:1.88-slim-bookworm AS build
ARG BUILDARCH
ARG TARGETARCH

# The image has a C compiler for the machine that it runs on.
RUN case "$BUILDARCH/$TARGETARCH" in \
      amd64/arm64) packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
      arm64/amd64) packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
      *) packages="" ;; \
    esac \
 && apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates $packages \
 && rm -rf /var/lib/apt/lists/*
RUN case "$TARGETARCH" in \
      amd64) rustup target add x86_64-unknown-linux-gnu ;; \
      arm64) rustup target add aarch64-unknown-linux-gnu ;; \
      *) echo "there is no image for $TARGETARCH" >&2; exit 1 ;; \
    esac

WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo xtask image-root "$TARGETARCH" \
 && cp -a "target/dist/parts/image-$TARGETARCH" /image \
 && chown 65532:65532 /image/var/lib/evenkeel

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="evenkeel"
LABEL org.opencontainers.image.description="Fair queuing for HTTP services: one noisy client no longer slows down all the others"
LABEL org.opencontainers.image.source="https://github.com/evenkeel/evenkeel"
LABEL org.opencontainers.image.licenses="MIT OR Apache-2.0"
LABEL org.opencontainers.image.version="$VERSION"
# /var/lib/evenkeel is the only directory besides /tmp that the user may write to; it is for `--data-dir`, and a volume.
COPY --from=build /image /
ENV PATH=/usr/bin
USER 65532:65532
WORKDIR /
EXPOSE 8080/tcp 9901/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/bin/evenkeel", "health"]
ENTRYPOINT ["/usr/bin/evenkeel"]
CMD ["--help"]
