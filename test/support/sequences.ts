import fc from 'fast-check';

/** The same sequences at each run; another number makes others. */
const SEED = 13;

/** One request, what it should come to by the model, and the look at what it came to. */
class Step<Model extends object, Real> implements fc.AsyncCommand<Model, Real> {
  constructor(
    private readonly words: string,
    private readonly act: (model: Model, real: Real) => Promise<void>,
  ) {}

  check(): boolean {
    return true;
  }

  async run(model: Model, real: Real): Promise<void> {
    await this.act(model, real);
  }

  toString(): string {
    return this.words;
  }
}

/**
 * A kind of step, with generated arguments.
 *
 * @param name what the report of a failure calls it
 */
export function step<Arguments extends readonly unknown[], Model extends object, Real>(
  name: string,
  given: fc.Arbitrary<Arguments>,
  act: (model: Model, real: Real, ...given: Arguments) => Promise<void>,
): fc.Arbitrary<fc.AsyncCommand<Model, Real>> {
  return given.map(
    (values) =>
      new Step<Model, Real>(`${name}(${JSON.stringify(values).slice(1, -1)})`, async (model, real) =>
        act(model, real, ...values),
      ),
  );
}

/**
 * Goes through generated sequences of steps on a model and on what it is a model of.
 *
 * @param begin a new model and a new real thing, for each sequence
 * @returns the shortest sequence found at which they differ, with the difference; null when there is none
 */
export async function failedSequence<Model extends object, Real>(
  steps: fc.Arbitrary<fc.AsyncCommand<Model, Real>>[],
  begin: () => Promise<{ model: Model; real: Real }>,
  { sequences, length }: { sequences: number; length: number },
): Promise<string | null> {
  const result = await fc.check(
    fc.asyncProperty(fc.commands(steps, { maxCommands: length, size: 'max' }), async (commands) => {
      await fc.asyncModelRun(begin, commands);
    }),
    { seed: SEED, numRuns: sequences },
  );
  return result.failed ? (fc.defaultReportMessage(result) ?? 'it failed without a message') : null;
}
