import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../common/validation/text.decorator.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../custom-secret-name.js';

/** Body of `PUT /api/secrets/{name}`. */
@ApiSchema({ name: 'UpdateCustomSecret' })
export class UpdateSecretDto {
  @Text({
    required: true,
    description: 'The name from now on; the present one to keep it.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;

  @Text({
    nullable: true,
    secret: true,
    description: 'A new value; absent or null keeps the stored one.',
    example: 'secret-example',
  })
  value?: string | null;

  @Text({
    nullable: true,
    description: 'What it is for; absent keeps the stored text, null clears it.',
    example: 'Token of the deployment service',
  })
  description?: string | null;
}
