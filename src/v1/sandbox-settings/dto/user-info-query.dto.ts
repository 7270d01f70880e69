import { Flag } from '../../../common/validation/flag.decorator.js';

/** Query of `GET /api/v1/users/me`. */
export class UserInfoQueryDto {
  @Flag({
    default: false,
    description:
      'Whether keys are shown in clear. Needs the key of a running sandbox of the user in `X-Session-API-Key`, and the key of the user in `Authorization` or `X-Access-Token`.',
    example: false,
  })
  expose_secrets?: boolean;
}
