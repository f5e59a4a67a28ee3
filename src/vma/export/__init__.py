"""A trained model for places without torch: its networks as ONNX graphs, and the page as plain files."""

from vma.export.onnx_folder import write_onnx

__all__ = ["write_onnx"]
