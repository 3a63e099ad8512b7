"""A Keras optimizer that averages gradients over all ranks before it applies them."""

from __future__ import annotations

from typing import Any, Optional

import keras

from gleaner.errors import InvalidArgumentError
from gleaner.tensorflow.gradients import average_gradients


class _Averaging:
    """Comes before the class of the wrapped optimizer in the order of base classes."""

    _gleaner_name: Optional[str]
    _gleaner_sparse_as_dense: bool

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        averages = average_gradients(list(grads), self._gleaner_name, self._gleaner_sparse_as_dense)
        super().apply(averages, trainable_variables)  # type: ignore[misc]


def DistributedOptimizer(  # the name that Horovod's users know
    optimizer: keras.optimizers.Optimizer, name: Optional[str] = None, sparse_as_dense: bool = False
) -> keras.optimizers.Optimizer:
    """Makes a Keras optimizer average gradients over all ranks before it clips and applies them, and returns it.

    The optimizer keeps its variables, and its class gets a subclass of the same name. A saved model has an optimizer of
    the original class, which averages nothing until it is wrapped. With mixed precision wrap the
    keras.optimizers.LossScaleOptimizer, and not the optimizer inside it: ranks skip a step together then.

    Args:
        optimizer: Optimizer of Keras 3 with the backend TensorFlow.
        name: As in grouped_allreduce(). Only needed to find the gradients in traces.
        sparse_as_dense: As in DistributedGradientTape.

    Raises:
        TypeError: `optimizer` is no Keras optimizer.
        InvalidArgumentError: `optimizer` is wrapped already, or Keras uses another backend than TensorFlow.
    """
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise TypeError(f"expected a Keras optimizer, not {type(optimizer).__name__}")
    if keras.backend.backend() != "tensorflow":
        raise InvalidArgumentError(f"Keras uses the backend {keras.backend.backend()}; set KERAS_BACKEND=tensorflow")
    base = type(optimizer)
    if issubclass(base, _Averaging):
        raise InvalidArgumentError("this optimizer averages gradients already; wrap it once")
    settings = {
        "__module__": base.__module__,
        "__doc__": base.__doc__,
        "_gleaner_name": name,
        "_gleaner_sparse_as_dense": sparse_as_dense,
    }
    optimizer.__class__ = type(base.__name__, (_Averaging, base), settings)
    return optimizer
