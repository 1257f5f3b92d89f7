"""What is measured on tokens: consensus, energy rate, angles, clusters, dimension, collapse, distances between laws."""

from .angles import AngleStatistics as AngleStatistics
from .angles import angle_statistics as angle_statistics
from .clusters import TOLERANCES as TOLERANCES
from .clusters import cluster_labels as cluster_labels
from .clusters import count_clusters as count_clusters
from .clusters import merge_angles as merge_angles
from .collapse import collapse_time as collapse_time
from .moments import effective_dimension as effective_dimension
from .moments import order_parameter as order_parameter
from .rate import energy_rate as energy_rate
from .transport import sinkhorn_divergence as sinkhorn_divergence
from .transport import sliced_wasserstein as sliced_wasserstein
