import { Text } from '../../../common/validation/text.decorator.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../../../settings/custom-secret-name.js';
import { SandboxIdDto } from './sandbox-id.dto.js';

/** Path of one secret. */
export class SandboxSecretPathDto extends SandboxIdDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  secret_name: string;
}
