"""Settings: from the environment, `.env`, or `haru.toml` in the app's folder, in this order; the command line wins.

HARU_MODEL              gemini:NAME, openai:NAME, offline, cassette:FILE
HARU_CASSETTE           a file that all traffic with the model is recorded to
HARU_DATABASE_URL       sqlite:///PATH, memory: (a relative PATH is one of the app's folder where it stands in a file
                        there, else of the current folder)
HARU_DATABASE_TIMEOUT_S seconds to wait while another process holds the database
HARU_LIMITS__MAX_STEPS  and every other limit of `Limits`
GEMINI_API_KEY, GOOGLE_API_KEY, GOOGLE_GEMINI_BASE_URL, HARU_GEMINI_API_VERSION
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from haru_fsm.clock import SystemClock
from haru_fsm.errors import ModelError, SettingsError
from haru_fsm.limits import Limits
from haru_fsm.models import Model
from haru_fsm.stores import Store

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.certificate import Costs

DEFAULT_GEMINI = "gemini:gemini-flash-latest"
DATABASE = "memory_store/haru.db"
SQLITE = "sqlite:///"


class _Secrets(DotEnvSettingsSource):
    """`.env` in the app's folder."""

    def __call__(self) -> dict[str, Any]:
        return _beside(self.config.get("env_file"), super().__call__())


class _File(TomlConfigSettingsSource):
    """`haru.toml` in the app's folder."""

    def __call__(self) -> dict[str, Any]:
        return _beside(self.config.get("toml_file"), super().__call__())


def _beside(file: Any, found: dict[str, Any]) -> dict[str, Any]:
    """What a file says, with a database of a relative path beside that file, wherever the command is run."""
    url = found.get("database_url")
    if not (isinstance(file, Path) and isinstance(url, str) and url.startswith(SQLITE) and len(url) > len(SQLITE)):
        return found
    return {**found, "database_url": f"{SQLITE}{file.parent / url.removeprefix(SQLITE)}"}


class Settings(BaseSettings):
    """What a user may set. Raises SettingsError (by `for_folder`) for a value that cannot be used, naming it."""

    model_config = SettingsConfigDict(
        env_prefix="HARU_", env_nested_delimiter="__", extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    model: str | None = None
    cassette: Path | None = None
    database_url: str | None = None
    database_timeout_s: float = Field(default=5.0, ge=0, le=3600)
    limits: Limits = Limits()
    gemini_api_version: str | None = None
    gemini_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("GEMINI_API_KEY", "GOOGLE_API_KEY")
    )
    gemini_base_url: str | None = Field(default=None, validation_alias="GOOGLE_GEMINI_BASE_URL")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, _Secrets(settings_cls), _File(settings_cls))

    @classmethod
    def for_folder(cls, folder: Path | None, **given: Any) -> Self:
        """The settings for an app's folder. `given` wins over all; a None in it counts as not given."""
        here = folder if folder is not None else Path.cwd()

        class InFolder(cls):  # type: ignore[valid-type, misc]
            model_config = SettingsConfigDict(env_file=here / ".env", toml_file=here / "haru.toml")

        try:
            settings: Self = InFolder(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            raise SettingsError(_told(error)) from error
        except ValueError as error:
            raise SettingsError(f"The settings in {here} cannot be read: {error}") from error
        return settings

    @classmethod
    def for_app(cls, app: App) -> Self:
        """The settings for a loaded app."""
        return cls.for_folder(app.folder)

    def costs(self, limits: Limits) -> Costs:
        """What one piece of work can cost with these models, at the prices of this moment.

        A model's window is `max_input_tokens` where nobody knows it.
        """
        from haru_fsm.certificate import Costs
        from haru_fsm.models.prices import dearest

        now = SystemClock().now()
        known = dearest(self.model_spec, at=now, window=limits.max_input_tokens)
        return replace(
            Costs.of(limits),
            window_tokens=known.tokens,
            usd_per_request=known.usd,
            usd_per_token=known.usd_per_token,
        )

    # -- what they make

    @property
    def model_spec(self) -> str:
        """`kind:name` of the model: what is set, else Gemini where there is a key, else offline."""
        return self.model or (DEFAULT_GEMINI if self.gemini_api_key else "offline")

    def make_model(self, app: App) -> Model:
        """The model, recorded where `cassette` names a file.

        Raises SettingsError for an unknown kind, ModelError where a key or an extra is missing, or a cassette's file
        cannot be used.
        """
        model = self._model(app)
        if self.cassette is None:
            return model
        if self.model_spec == f"cassette:{self.cassette}":
            raise SettingsError(f"HARU_CASSETTE is {self.cassette}, and so is what is played. Name another file.")
        from haru_fsm.models.cassette import RecordingModel

        return RecordingModel(model, self.cassette, keys=self.secrets())

    def secrets(self) -> list[str]:
        """Every secret of these settings."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def _model(self, app: App) -> Model:
        kind, _, name = self.model_spec.partition(":")
        if kind == "offline" and not name:
            from haru_fsm.models.offline import OfflineModel

            return OfflineModel()
        if kind == "cassette" and name:
            from haru_fsm.models.cassette import CassetteModel

            return CassetteModel(name)
        if kind == "gemini" and name:
            return self._gemini(name, app.limits)
        raise SettingsError(
            f"HARU_MODEL is {self.model_spec!r}. Use gemini:NAME (for example {DEFAULT_GEMINI}), offline, or "
            "cassette:FILE."
        )

    def _gemini(self, name: str, limits: Limits) -> Model:
        from haru_fsm.models.gemini import GeminiModel

        if self.gemini_api_key is None:
            raise ModelError("There is no key for Gemini. Set GEMINI_API_KEY, or use --model offline.")
        return GeminiModel(
            name,
            api_key=self.gemini_api_key.get_secret_value(),
            base_url=self.gemini_base_url,
            api_version=self.gemini_api_version,
            limits=limits,
            clock=SystemClock(),
        )

    def make_store(self, folder: Path | None) -> Store:
        """The store; by default a file in the app's folder. Raises SettingsError for an address of another kind."""
        url = self.database_url
        if url is None:
            from haru_fsm.stores.sqlite import SQLiteStore

            return SQLiteStore((folder or Path.cwd()) / DATABASE, busy_timeout_s=self.database_timeout_s)
        if url.partition(":")[0] == "memory":
            from haru_fsm.stores.memory import MemoryStore

            return MemoryStore()
        if url.startswith(SQLITE) and len(url) > len(SQLITE):
            from haru_fsm.stores.sqlite import SQLiteStore

            return SQLiteStore(Path(url.removeprefix(SQLITE)), busy_timeout_s=self.database_timeout_s)
        raise SettingsError(
            f"The database address is {url!r}. Use sqlite:///FILE (sqlite:////absolute/FILE) or memory:."
        )


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    env = "HARU_" + "__".join(str(part) for part in first["loc"]).upper()
    return f"The setting {name} (or {env}) cannot be used: {first['msg']} (it is {first.get('input')!r})."
