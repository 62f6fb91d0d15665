# One image for the service and the GPU agent: `sevenhop run`, `sevenhop gpu-agent`.
#
#   docker build --tag sevenhop .

ARG DEBIAN=debian:trixie-slim

# ---- everything that is needed to make it stays here
FROM ${DEBIAN} AS build
# Versions come from the base's own archive, which holds one of each.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src

# What was locked, each checked against its hash; a layer of its own, for it changes least.
COPY requirements.lock ./
RUN python3 -m pip download --quiet --no-cache-dir --disable-pip-version-check --require-hashes --only-binary=:all: \
      --dest /wheels --requirement requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY rules rules
COPY playbooks playbooks
COPY service service
# From here on nothing is asked of an index.
RUN python3 -m venv /build \
 && /build/bin/pip install --quiet --no-index --find-links /wheels hatchling editables \
 && /build/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels .
# Of the locked wheels only those that the service needs go in, and no pip.
RUN python3 -m venv --without-pip /opt/sevenhop \
 && /build/bin/pip --python /opt/sevenhop/bin/python install --quiet --no-index --find-links /wheels "sevenhop[agent,otel,scaled]" \
 && ln -s "$(/opt/sevenhop/bin/python -c 'import sevenhop; print(sevenhop.__path__[0])')/_data" /opt/sevenhop/share

# ---- what runs
FROM ${DEBIAN}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sevenhop" \
      org.opencontainers.image.description="Says which of the seven hops of AI inference on Kubernetes broke first, for whom, and what helps." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.url="https://sevenhop.dev" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Python alone: no pip, no setuptools, no compiler.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir -p /var/lib/sevenhop /usr/share/sevenhop \
 && ln -s /opt/sevenhop/share/rules /usr/share/sevenhop/rules \
 && ln -s /opt/sevenhop/share/playbooks /usr/share/sevenhop/playbooks \
 && chown 65532:65532 /var/lib/sevenhop
COPY --from=build /opt/sevenhop /opt/sevenhop
# The root file system may be read-only: state and temporary files are the only things written.
ENV PATH=/opt/sevenhop/bin:/usr/bin:/bin \
    HOME=/var/lib/sevenhop \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SEVENHOP__STATE=/var/lib/sevenhop
WORKDIR /var/lib/sevenhop
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["sevenhop"]
CMD ["run"]
