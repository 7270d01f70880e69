import type { DocumentedError } from './documented-error.js';
import { problemResponses } from './problem-responses.js';

/** Documents the error answers of an operation that is open to everyone: 500 and the given ones. */
export function ApiOpenProblems(...errors: DocumentedError[]): MethodDecorator & ClassDecorator {
  return problemResponses([500, ...errors]);
}
