import type { DocumentedError } from './documented-error.js';
import { problemResponses } from './problem-responses.js';

/** Any operation that needs a key can answer with these. */
const ALWAYS = [401, 429, 500, 503];

/** Documents the error answers of an operation that needs a key: 401, 429, 500, 503 and the given ones. */
export function ApiProblems(...errors: DocumentedError[]): MethodDecorator & ClassDecorator {
  return problemResponses([...ALWAYS, ...errors]);
}
