"""SavedModels that load wherever TensorFlow is."""

from ._export import Exported as Exported, export as export
from ._folders import check_free as check_free
from ._graph_export import export_graph as export_graph
from ._stock_ops import StockOpsError as StockOpsError
from ._table_files import WrittenTable as WrittenTable
