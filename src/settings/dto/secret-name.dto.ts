import { Text } from '../../common/validation/text.decorator.js';
import { CUSTOM_SECRET_NAME, customSecretNameProblem } from '../custom-secret-name.js';

/** Path of `/api/secrets/{name}`. */
export class SecretNameDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    form: { pattern: CUSTOM_SECRET_NAME.source },
    rule: customSecretNameProblem,
  })
  name: string;
}
