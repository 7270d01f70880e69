/** USD per million tokens. */
interface ModelPrice {
  input: number;
  output: number;
  cache_read?: number | undefined;
  cache_write?: number | undefined;
}

interface CallTokens {
  /** With those from the provider's cache and into it. */
  input: number;
  output: number;
  cacheRead?: number | undefined;
  cacheWrite?: number | undefined;
}

/** What a call of a model costs, in USD. */
export function callCost(price: ModelPrice, tokens: CallTokens): number {
  const { input, output, cacheRead: read = 0, cacheWrite: written = 0 } = tokens;
  const { cache_read: readPrice = price.input, cache_write: writePrice = price.input } = price;
  const prompt = (input - read - written) * price.input + read * readPrice + written * writePrice;
  return (prompt + output * price.output) / 1_000_000;
}

/** For people: a share of a budget may be a third of it. */
export function usd(amount: number): string {
  return `${Number(amount.toPrecision(6))} USD`;
}
