import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';

const pipe = new InputValidationPipe();

/** What the pipe makes of a JSON body. */
export async function parseBody(dto: new () => object, json: string): Promise<unknown> {
  return pipe.transform(JSON.parse(json), { type: 'body', metatype: dto });
}

/** `location type` of every problem of a JSON body, in order, without the leading `body`; each has a sentence. */
export async function bodyProblems(dto: new () => object, json: string): Promise<string[]> {
  const error = await parseBody(dto, json).catch((reason: unknown) => reason);
  if (!(error instanceof InvalidInputError)) {
    throw new Error('expected the body to be refused');
  }
  return error.problems.map(({ loc, msg, type }) => {
    if (!/^[A-Z].*\.$/.test(msg)) {
      throw new Error(`"${msg}" is not a sentence`);
    }
    return `${loc.slice(1).join('.')} ${type}`;
  });
}
