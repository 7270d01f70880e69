import { Text } from '../../common/validation/text.decorator.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../custom-secret-name.js';

/** Path of `/api/secrets/{name}`. */
export class SecretNameDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;
}
