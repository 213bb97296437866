from workers.webhook_signature import sign

# The example of the specification's own libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - published
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP_S = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_signed_as_the_specification_says() -> None:
    assert sign(MESSAGE_ID, TIMESTAMP_S, BODY, secrets=[SECRET]) == SIGNATURE


def test_while_a_secret_is_rotated_both_sign() -> None:
    other = "whsec_AAAA"

    signatures = sign(MESSAGE_ID, TIMESTAMP_S, BODY, secrets=[other, SECRET]).split(" ")

    assert signatures[1] == SIGNATURE
    assert signatures[0].startswith("v1,")
    assert signatures[0] != SIGNATURE
