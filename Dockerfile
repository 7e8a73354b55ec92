# Wirephoto in a container. The root file system may be read-only; /var/lib/wirephoto is what it
# writes, and /tmp while videos and PDFs are read:
#   docker run --name wirephoto --read-only --tmpfs /tmp -v wirephoto:/var/lib/wirephoto -p 8080:8080 wirephoto

FROM rust:1.95-bookworm AS build
# What ./run asks for, besides what the image has; the newest of the release, for its fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends cmake nasm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin wirephoto

FROM debian:bookworm-slim
# Videos that come without stills need ffmpeg: docker build --build-arg PACKAGES=ffmpeg .
ARG PACKAGES=""
# hadolint ignore=DL3008
RUN if [ -n "$PACKAGES" ]; then \
        apt-get update \
        && apt-get install -y --no-install-recommends $PACKAGES \
        && rm -rf /var/lib/apt/lists/*; \
    fi \
    && useradd --system --uid 10001 --user-group --no-create-home wirephoto \
    && install -d -o wirephoto -g wirephoto -m 0700 /var/lib/wirephoto
COPY --from=build /src/target/release/wirephoto /usr/bin/wirephoto
# For `serve --demo`, which looks in share/wirephoto beside the binary's folder.
COPY media-store/demo /usr/share/wirephoto/demo
COPY media-store/accounts.json /usr/share/wirephoto/accounts.json
WORKDIR /usr/share/wirephoto
# Settings of the environment count for every command: docker exec wirephoto wirephoto user list
ENV WIREPHOTO_SERVER__LISTEN=0.0.0.0:8080 \
    WIREPHOTO_DATA__DIR=/var/lib/wirephoto
USER 10001:10001
VOLUME /var/lib/wirephoto
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["wirephoto", "health"]
ENTRYPOINT ["wirephoto"]
CMD ["serve"]
