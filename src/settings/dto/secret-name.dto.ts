import { Text } from '../../common/validation/text.decorator.js';
import { customSecretNameProblem } from '../custom-secret-name.js';

/** Path of `/api/secrets/{name}`. */
export class SecretNameDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    rule: customSecretNameProblem,
  })
  name: string;
}
