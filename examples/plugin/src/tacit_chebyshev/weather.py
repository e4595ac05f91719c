"""A data set that comes with the package: experiments name its file as `weather/weather.csv`."""

from pathlib import Path

from tacit.experiments.data_sets import KnownData

WEATHER = KnownData(
    name="weather",
    title="Made-up sentences about the weather",
    columns="text, label (fine, foul)",
    license="Apache-2.0",
    source="this package",
    files={"weather.csv": "54da9503d9342b064cdf9d89e19e90a48ed9f8012032535af8c3200a899fa7bf"},
    folder=Path(__file__).parent / "data" / "weather",
)
