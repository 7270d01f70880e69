import { ApiExtraModels, getSchemaPath } from '@nestjs/swagger';
import { composeDecorators } from '../../../common/validation/compose-decorators.js';
import type { FieldProblem } from '../../../common/validation/field-rule.js';
import { NestedMap } from '../../../common/validation/nested-map.decorator.js';
import { PROVIDER_TYPES } from '../../git-provider.types.js';
import { ProviderTokenDto } from './provider-token.dto.js';

/**
 * A `provider_tokens` member: provider -> token. Arrives as `ProviderTokenInputs`; null in place of the map counts
 * as absent, null in place of an entry stays and means "remove".
 */
export function ProviderTokenMap(): PropertyDecorator {
  return composeDecorators(
    (target) => {
      ApiExtraModels(ProviderTokenDto)(target.constructor);
    },
    NestedMap({
      type: ProviderTokenDto,
      nullIsAbsent: true,
      nullableValues: true,
      keyRule: providerProblem,
      keySchema: { enum: PROVIDER_TYPES },
      schema: { oneOf: [{ $ref: getSchemaPath(ProviderTokenDto) }, { type: 'null' }] },
      description: `Tokens by provider (${PROVIDER_TYPES.join(', ')}). Providers left out keep their token, null removes it.`,
      example: { github: { token: 'ghp_exampleExampleExampleExampleExample1' }, gitlab: null },
    }),
  );
}

function providerProblem(key: string): Pick<FieldProblem, 'type' | 'msg'> | null {
  return PROVIDER_TYPES.some((provider) => provider === key)
    ? null
    : { type: 'enum', msg: `Expected one of: ${PROVIDER_TYPES.join(', ')}.` };
}
