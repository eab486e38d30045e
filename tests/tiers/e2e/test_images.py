"""Two builds of an image have the same parts and one digest (docs/operate/supply-chain.md)."""

from __future__ import annotations

import pytest

from tests.support.cluster.space import run

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("image", ["etcd", "gateway", "s3", "operator", "spark", "console"])
def test_an_image_that_is_built_again_is_the_same(image: str) -> None:
    """Its bill of materials, then every byte of layers and configuration; the second build uses no
    layer of the first.
    """
    run("hack/images/build-images", image, seconds=900)
    told = run("bash", "-c", f"AGAIN=1 hack/images/build-images {image} 2>&1", seconds=900)
    assert "the same parts" in told.splitlines(), "of hack/sbom/compare.py, on the bills of both builds"
    assert f"hudi-operator/{image}:dev: built again, the same: " in told
