# The worker on top of SGLang's own image. SGLang keeps its Python; the worker's dependencies live in their own venv.
#   docker build .                                                   CUDA 12.9, drivers from 570
#   docker build --build-arg BASE_IMAGE=lmsysorg/sglang:v0.5.17-cu130-runtime --build-arg MIN_DRIVER=580 .   CUDA 13
# 0.5.17's digest is not public knowledge yet: .github/workflows/image.yml resolves the tag, builds from its digest, and
# records it in the image's labels.
ARG BASE_IMAGE=lmsysorg/sglang:v0.5.17-cu129-runtime

# hadolint ignore=DL3006
FROM ${BASE_IMAGE} AS venv
SHELL ["/bin/bash", "-euxo", "pipefail", "-c"]
WORKDIR /build
COPY requirements/image.txt ./
# pip of the base installs into the venv, which therefore needs none; SGLang's own packages stay visible and untouched.
# numpy is the base's, as torch and transformers are; the checks of the final stage say so where it is missing or too old.
# Left out: the wheels' tests, PyMuPDF's own layout model (which it does without), onnxruntime's library for C programs
# (Python's own is beside it) and its tools that convert models, botocore's descriptions of services other than S3.
# Bytecode is kept for what the worker imports: its user cannot write it later.
RUN python3 -m venv --without-pip --system-site-packages /opt/handler-venv \
 && python3 -m pip --python /opt/handler-venv/bin/python install \
      --no-cache-dir --no-compile --no-deps --require-hashes -r image.txt \
 && site=$(echo /opt/handler-venv/lib/python3.*/site-packages) \
 && find "$site" -type d -name tests -prune -exec rm -r {} + \
 && rm -r "$site"/onnxruntime/{capi/libonnxruntime.so.*,quantization,tools,transformers} \
      "$site"/pymupdf/{layout,mupdf-devel} \
 && find "$site/botocore/data" -mindepth 1 -maxdepth 1 -type d ! -name s3 -exec rm -r {} + \
 && /opt/handler-venv/bin/python -c "import aiohttp, boto3, cv2, flufl.lock, huggingface_hub, onnxruntime, pebble, \
      prometheus_client, pybase64, pydantic_settings, pymupdf, pypdfium2, rapid_layout, rapidocr, runpod, simplejpeg, yaml; \
      boto3.client('s3', region_name='auto')"

# hadolint ignore=DL3006
FROM venv AS weights
SHELL ["/bin/bash", "-euxo", "pipefail", "-c"]
ARG BAKE_MODEL=1
COPY models.manifest.yaml ./
COPY handler/__init__.py handler/errors.py handler/schema.py handler/logs.py handler/redaction.py handler/
COPY handler/supervisor.py handler/
COPY handler/models handler/models
COPY scripts/__init__.py scripts/fetch_model.py scripts/
# A token is needed for a private mirror only; as a secret it never reaches a layer.
RUN --mount=type=secret,id=hf_token mkdir -p /models; \
    if [ "$BAKE_MODEL" = 1 ]; then \
      if [ -s /run/secrets/hf_token ]; then HF_TOKEN=$(cat /run/secrets/hf_token); export HF_TOKEN; fi; \
      /opt/handler-venv/bin/python -m scripts.fetch_model glm-ocr --to /models; \
    fi

# hadolint ignore=DL3006
FROM ${BASE_IMAGE} AS worker
SHELL ["/bin/bash", "-euxo", "pipefail", "-c"]
ARG MIN_DRIVER=570
ARG WORKER_UID=1000
COPY requirements/base.txt /tmp/base.txt
# SGLang imports distro without always bringing it. Ubuntu's image has a user 1000 of its own, hence no name of ours.
RUN if ! python3 -c "import distro"; then \
      python3 -m pip install --no-cache-dir --no-deps --break-system-packages --require-hashes -r /tmp/base.txt; \
    fi \
 && rm /tmp/base.txt \
 && install -d -o "$WORKER_UID" -g 0 -m 0775 /home/worker
COPY --from=venv /opt/handler-venv /opt/handler-venv
COPY --from=weights --chown=${WORKER_UID}:0 /models /models
ENV HANDLER_PYTHON=/opt/handler-venv/bin/python \
    HOME=/home/worker \
    MODELS_PATH=/models \
    MIN_DRIVER=${MIN_DRIVER} \
    HF_HUB_OFFLINE=1 \
    TRANSFORMERS_OFFLINE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY start.sh /start.sh
COPY models.manifest.yaml ./
COPY requirements/pip-check-allowed.txt requirements/
COPY scripts/__init__.py scripts/smoke_image.py scripts/
COPY handler handler
# Only the image tests leave checks out, because their stand-in for the base has no SGLang: see tests/image.
ARG SMOKE_WITHOUT=""
RUN /opt/handler-venv/bin/python -m compileall -q handler \
 && /opt/handler-venv/bin/python -m scripts.smoke_image ${SMOKE_WITHOUT:+--without "$SMOKE_WITHOUT"}
ARG BASE_DIGEST=""
ARG REVISION=""
ARG VERSION=""
LABEL org.opencontainers.image.title="glmocr-worker" \
      org.opencontainers.image.description="Documents to Markdown and structured JSON with GLM-OCR on RunPod Serverless" \
      org.opencontainers.image.licenses="Apache-2.0 AND AGPL-3.0-or-later" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
USER ${WORKER_UID}:0
# Python as process 1 gets SIGTERM itself, since start.sh ends in exec.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/start.sh"]
