import type { DtoClass } from '../common/validation/dto-class.js';
import { InvalidInputError } from '../common/errors/invalid-input.error.js';
import { InputValidationPipe } from '../common/validation/validation.pipe.js';
import { UsageError } from './usage.error.js';

/**
 * Applies the rules of a request's body to what came from the command line.
 *
 * @param flags the flag that each member came from
 * @throws UsageError naming the first flag whose value breaks a rule
 */
export async function checkedInput<T extends object>(
  type: DtoClass<T>,
  members: Record<string, unknown>,
  flags: Record<string, string>,
): Promise<T> {
  try {
    const dto = await new InputValidationPipe().transform(members, { type: 'body', metatype: type });
    if (dto instanceof type) {
      return dto;
    }
  } catch (error) {
    const [problem] = error instanceof InvalidInputError ? error.problems : [];
    if (problem) {
      throw new UsageError(`${flags[problem.loc[1] ?? ''] ?? problem.loc.join('.')}: ${problem.msg}`);
    }
    throw error;
  }
  throw new Error(`${type.name} has no rules to check`);
}
