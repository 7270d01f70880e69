import { ApiExtraModels, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import { NestedMap } from '../../common/validation/nested-map.decorator.js';
import { ProviderTokenMap } from '../../git-providers/tokens/dto/provider-token-map.decorator.js';
import type { ProviderTokenInputs } from '../../git-providers/tokens/provider-token-input.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../custom-secret-name.js';
import { CustomSecretValueDto } from './custom-secret-value.dto.js';

/** Tokens and secrets that come along with settings. Both maps are merged into what is stored. */
@ApiExtraModels(CustomSecretValueDto)
@ApiSchema({ name: 'UserSecrets' })
export class SecretsStoreDto {
  @ProviderTokenMap()
  provider_tokens?: ProviderTokenInputs;

  @NestedMap({
    type: CustomSecretValueDto,
    fromText: (secret) => ({ secret }),
    nullIsAbsent: true,
    keyRule: (name) => {
      const msg = customSecretNameProblem(name);
      return msg === null ? null : { type: 'value_error', msg };
    },
    keySchema: CUSTOM_SECRET_FORM,
    schema: {
      oneOf: [{ $ref: getSchemaPath(CustomSecretValueDto) }, { type: 'string', format: 'password' }],
    },
    description: 'Secrets by name; a bare string is the value. Secrets left out are kept.',
    example: { DEPLOY_TOKEN: { secret: 'secret-example', description: 'Token of the deployment service' } },
  })
  custom_secrets?: Map<string, CustomSecretValueDto>;
}
