# The image of kubesched, to be used as kube-scheduler's: the same command, the same flags.
#
#   docker build --tag kubesched:0.1.0 .
#
# Nothing in it writes to the file system or needs to be root.

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build

# What changes seldom comes first. Everything that is downloaded is known by its hash.
COPY deploy/image/ deploy/image/
RUN python -m pip install --require-hashes --only-binary=:all: \
        --requirement=deploy/image/build-requirements.txt \
    && python -m venv --without-pip /opt/kubesched \
    && python -m pip --python=/opt/kubesched/bin/python install --require-hashes \
        --only-binary=:all: --no-compile --requirement=deploy/image/requirements.txt

COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
# Bytecode without checks against its source, which never changes in an image.
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir=dist . \
    && python -m pip --python=/opt/kubesched/bin/python install --no-deps --no-index --no-compile \
        dist/kubesched-*.whl \
    && /opt/kubesched/bin/python -m compileall -q --invalidation-mode=unchecked-hash \
        /opt/kubesched/lib


FROM python:3.13-slim
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kubesched" \
      org.opencontainers.image.description="kube-scheduler in Python: a drop-in replacement" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13-slim"

# The base image comes without the standard library's bytecode, which cannot be written later on, and
# with an installer, for which there is no use.
RUN python -m pip uninstall --yes pip \
    && python -m compileall -q --invalidation-mode=unchecked-hash \
        -x '/(ensurepip|idlelib|site-packages|test|tests|turtledemo)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

COPY --from=build /opt/kubesched/ /opt/kubesched/
ENV PATH=/opt/kubesched/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["kube-scheduler"]
