/** A model as settings and conversations name it. */
export interface NamedModel {
  model: string | null;
  /** Blank or null: the provider's own address. */
  baseUrl: string | null;
}

/** The provider of model names without one. */
const DEFAULT_PROVIDER = 'openai';

/**
 * Whether two models are on the same server, so that a key for one may be sent to the other. Without an address the
 * name implies the provider (`anthropic/x`). Where a model has no name either, only the addresses are compared.
 */
export function isSameModelServer(one: NamedModel, other: NamedModel): boolean {
  const [from, to] = [serverOf(one), serverOf(other)];
  return from === null || to === null ? originOf(one) === originOf(other) : from === to;
}

function serverOf(named: NamedModel): string | null {
  const origin = originOf(named);
  if (origin !== '') {
    return origin;
  }
  const model = named.model?.trim() ?? '';
  return model === '' ? null : (/^([^/]+)\/./.exec(model)?.[1] ?? DEFAULT_PROVIDER);
}

function originOf({ baseUrl }: NamedModel): string {
  const text = baseUrl?.trim() ?? '';
  return URL.canParse(text) ? new URL(text).origin : text;
}
