/* SPDX-License-Identifier: Apache-2.0 */
/* Zones against Python's zoneinfo (another reader of the same database) at random instants up to
 * the year 2198, and Flink's answers at the edges of summer time. */
#include "dataplane/expr/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dataplane/expr/text_time.h"

static const struct {
    const char *zone;
    int64_t utc_ms;
    int64_t local_ms;
} samples[] = {
    {"Europe/Berlin", 511025150000, 511028750000},
    {"Europe/Berlin", 6640340626133, 6640347826133},
    {"Europe/Berlin", 794472658000, 794476258000},
    {"Europe/Berlin", 6131011742594, 6131018942594},
    {"Europe/Berlin", 140722156000, 140725756000},
    {"Europe/Berlin", 2401030205930, 2401033805930},
    {"Europe/Berlin", 1798451156000, 1798454756000},
    {"Europe/Berlin", 1815337560564, 1815344760564},
    {"Europe/Berlin", 503221913000, 503225513000},
    {"Europe/Berlin", 4918501927734, 4918505527734},
    {"Europe/Berlin", 1009883194000, 1009886794000},
    {"Europe/Berlin", 6418432437562, 6418439637562},
    {"Europe/Berlin", 1022960728000, 1022967928000},
    {"Europe/Berlin", 5800647298881, 5800654498881},
    {"America/New_York", 323446306000, 323428306000},
    {"America/New_York", 5091064710155, 5091050310155},
    {"America/New_York", 1864113090000, 1864095090000},
    {"America/New_York", 5769732752015, 5769718352015},
    {"America/New_York", 1441845164000, 1441830764000},
    {"America/New_York", 3138197566163, 3138183166163},
    {"America/New_York", 1628287049000, 1628272649000},
    {"America/New_York", -16222509202, -16236909202},
    {"America/New_York", 66597223000, 66579223000},
    {"America/New_York", 957200204609, 957185804609},
    {"America/New_York", 1543662608000, 1543644608000},
    {"America/New_York", 5759733486807, 5759719086807},
    {"America/New_York", 1978044335000, 1978029935000},
    {"America/New_York", 1633671387745, 1633656987745},
    {"Asia/Kolkata", 1719938488000, 1719958288000},
    {"Asia/Kolkata", 2277808132987, 2277827932987},
    {"Asia/Kolkata", 288083023000, 288102823000},
    {"Asia/Kolkata", 3574703581099, 3574723381099},
    {"Asia/Kolkata", 77065967000, 77085767000},
    {"Asia/Kolkata", 383981819222, 384001619222},
    {"Asia/Kolkata", 554010463000, 554030263000},
    {"Asia/Kolkata", 5968268234641, 5968288034641},
    {"Asia/Kolkata", 1836582957000, 1836602757000},
    {"Asia/Kolkata", 1092897679519, 1092917479519},
    {"Asia/Kolkata", 1789878482000, 1789898282000},
    {"Asia/Kolkata", 5752250245359, 5752270045359},
    {"Asia/Kolkata", 1146977644000, 1146997444000},
    {"Asia/Kolkata", 2312874164598, 2312893964598},
    {"Australia/Lord_Howe", 499046146000, 499083946000},
    {"Australia/Lord_Howe", 3683517040698, 3683554840698},
    {"Australia/Lord_Howe", 1966516899000, 1966554699000},
    {"Australia/Lord_Howe", 3789790985876, 3789830585876},
    {"Australia/Lord_Howe", 600620469000, 600660069000},
    {"Australia/Lord_Howe", 6978065196167, 6978104796167},
    {"Australia/Lord_Howe", 1500266159000, 1500303959000},
    {"Australia/Lord_Howe", 3496410058987, 3496449658987},
    {"Australia/Lord_Howe", 1163433497000, 1163473097000},
    {"Australia/Lord_Howe", 2244298126730, 2244337726730},
    {"Australia/Lord_Howe", 1407699563000, 1407737363000},
    {"Australia/Lord_Howe", 5001742201851, 5001780001851},
    {"Australia/Lord_Howe", 1231651357000, 1231690957000},
    {"Australia/Lord_Howe", 947120938127, 947160538127},
    {"America/Sao_Paulo", 136280545000, 136269745000},
    {"America/Sao_Paulo", 6165147618654, 6165136818654},
    {"America/Sao_Paulo", 1038327105000, 1038319905000},
    {"America/Sao_Paulo", 180182329819, 180171529819},
    {"America/Sao_Paulo", 143048210000, 143037410000},
    {"America/Sao_Paulo", 5857887422154, 5857876622154},
    {"America/Sao_Paulo", 43218872000, 43208072000},
    {"America/Sao_Paulo", 1062253303787, 1062242503787},
    {"America/Sao_Paulo", 891629419000, 891618619000},
    {"America/Sao_Paulo", 3548505825045, 3548495025045},
    {"America/Sao_Paulo", 1299202783000, 1299191983000},
    {"America/Sao_Paulo", 6734364399046, 6734353599046},
    {"America/Sao_Paulo", 811329557000, 811318757000},
    {"America/Sao_Paulo", 7180645644338, 7180634844338},
    {"Asia/Tehran", 1182944462000, 1182957062000},
    {"Asia/Tehran", 4011798499517, 4011811099517},
    {"Asia/Tehran", 506702111000, 506714711000},
    {"Asia/Tehran", 4088563264317, 4088575864317},
    {"Asia/Tehran", 15532186000, 15544786000},
    {"Asia/Tehran", 130586681614, 130599281614},
    {"Asia/Tehran", 1150145366000, 1150157966000},
    {"Asia/Tehran", 4229733736202, 4229746336202},
    {"Asia/Tehran", 876036180000, 876048780000},
    {"Asia/Tehran", 5347433016269, 5347445616269},
    {"Asia/Tehran", 335434777000, 335450977000},
    {"Asia/Tehran", 2762381006888, 2762393606888},
    {"Asia/Tehran", 729744635000, 729757235000},
    {"Asia/Tehran", 1147891820981, 1147904420981},
    {"Pacific/Apia", 297052915000, 297013315000},
    {"Pacific/Apia", 1422592433471, 1422642833471},
    {"Pacific/Apia", 1868077821000, 1868124621000},
    {"Pacific/Apia", 2033696452659, 2033743252659},
    {"Pacific/Apia", 1861508700000, 1861555500000},
    {"Pacific/Apia", 6653265595572, 6653312395572},
    {"Pacific/Apia", 220273459000, 220233859000},
    {"Pacific/Apia", 6758388745963, 6758435545963},
    {"Pacific/Apia", 1742708828000, 1742755628000},
    {"Pacific/Apia", 1977663589441, 1977710389441},
    {"Pacific/Apia", 1362128286000, 1362178686000},
    {"Pacific/Apia", 7188680574243, 7188727374243},
    {"Pacific/Apia", 646579118000, 646539518000},
    {"Pacific/Apia", 5973782500264, 5973829300264},
    {"Africa/Casablanca", 1119112346000, 1119112346000},
    {"Africa/Casablanca", 5396312913347, 5396316513347},
    {"Africa/Casablanca", 24604757000, 24604757000},
    {"Africa/Casablanca", 3186137029593, 3186140629593},
    {"Africa/Casablanca", 676191910000, 676191910000},
    {"Africa/Casablanca", -113873485370, -113873485370},
    {"Africa/Casablanca", 1265304114000, 1265304114000},
    {"Africa/Casablanca", 2515194732061, 2515198332061},
    {"Africa/Casablanca", 1360501433000, 1360501433000},
    {"Africa/Casablanca", 2494409554477, 2494413154477},
    {"Africa/Casablanca", 757881026000, 757881026000},
    {"Africa/Casablanca", 7012458684361, 7012462284361},
    {"Africa/Casablanca", 1307525297000, 1307528897000},
    {"Africa/Casablanca", 2836328193755, 2836331793755},
    {"Europe/Dublin", 1051199422000, 1051203022000},
    {"Europe/Dublin", 4190240273062, 4190243873062},
    {"Europe/Dublin", 1451742573000, 1451742573000},
    {"Europe/Dublin", 4186246382378, 4186249982378},
    {"Europe/Dublin", 539280985000, 539280985000},
    {"Europe/Dublin", 2497107807305, 2497107807305},
    {"Europe/Dublin", 1272753159000, 1272756759000},
    {"Europe/Dublin", 2383228135181, 2383231735181},
    {"Europe/Dublin", 781587612000, 781591212000},
    {"Europe/Dublin", 595625718776, 595625718776},
    {"Europe/Dublin", 792752127000, 792752127000},
    {"Europe/Dublin", 934460841806, 934464441806},
    {"Europe/Dublin", 809945676000, 809949276000},
    {"Europe/Dublin", 4545387918832, 4545387918832},
    {"America/St_Johns", 57812847000, 57800247000},
    {"America/St_Johns", 7031577524134, 7031568524134},
    {"America/St_Johns", 665755782000, 665743182000},
    {"America/St_Johns", 1947529689669, 1947520689669},
    {"America/St_Johns", 1726163837000, 1726154837000},
    {"America/St_Johns", 956970277335, 956961277335},
    {"America/St_Johns", 402426278000, 402417278000},
    {"America/St_Johns", 2712261044665, 2712248444665},
    {"America/St_Johns", 1499086195000, 1499077195000},
    {"America/St_Johns", 216708004615, 216695404615},
    {"America/St_Johns", 691416674000, 691404074000},
    {"America/St_Johns", 3876564206691, 3876551606691},
    {"America/St_Johns", 1790011138000, 1790002138000},
    {"America/St_Johns", 764049931829, 764037331829},
    {"Asia/Kathmandu", 1837247831000, 1837268531000},
    {"Asia/Kathmandu", 3926135348081, 3926156048081},
    {"Asia/Kathmandu", 723079715000, 723100415000},
    {"Asia/Kathmandu", 5031354896582, 5031375596582},
    {"Asia/Kathmandu", 968734571000, 968755271000},
    {"Asia/Kathmandu", 962217637805, 962238337805},
    {"Asia/Kathmandu", 259672275000, 259692075000},
    {"Asia/Kathmandu", 4240604975980, 4240625675980},
    {"Asia/Kathmandu", 409748054000, 409767854000},
    {"Asia/Kathmandu", 5448487123856, 5448507823856},
    {"Asia/Kathmandu", 1800614313000, 1800635013000},
    {"Asia/Kathmandu", 2268898775884, 2268919475884},
    {"Asia/Kathmandu", 598272073000, 598292773000},
    {"Asia/Kathmandu", 5555727180847, 5555747880847},
    {"UTC", 1378549761000, 1378549761000},
    {"UTC", 4462333131634, 4462333131634},
    {"UTC", 741489173000, 741489173000},
    {"UTC", 2331800550431, 2331800550431},
    {"UTC", 626942578000, 626942578000},
    {"UTC", 6321468126870, 6321468126870},
    {"UTC", 582342797000, 582342797000},
    {"UTC", 1795960632649, 1795960632649},
    {"UTC", 895298167000, 895298167000},
    {"UTC", 1047253170581, 1047253170581},
    {"UTC", 879442055000, 879442055000},
    {"UTC", 4247628708423, 4247628708423},
    {"UTC", 335002853000, 335002853000},
    {"UTC", 657151192488, 657151192488},
    {"Pacific/Apia", 1325239199999, 1325203199999},
    {"Pacific/Apia", 1325239200000, 1325289600000},
};

static void test_local_when_random_instants_then_as_zoneinfo(void **state)
{
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct zone *zone = zone_open(samples[i].zone);
        assert_non_null(zone);
        const int64_t local = zone_local(zone, samples[i].utc_ms);
        if (local != samples[i].local_ms) {
            print_error("%s at %ld\n", samples[i].zone, samples[i].utc_ms);
        }
        assert_int_equal(local, samples[i].local_ms);
        /* Back again, but for times that come twice, where the first one is meant. */
        const int64_t back = zone_utc(zone, local);
        assert_true(back == samples[i].utc_ms || zone_local(zone, back) == local);
        assert_true(back <= samples[i].utc_ms);
        zone_destroy(zone);
    }
}

static int64_t at(const char *text)
{
    const struct timestamp_form form = {.separator = ' '};
    const struct span span = {.data = (const uint8_t *)text, .bytes = strlen(text)};
    struct timestamp value;
    assert_true(timestamp_parse(span, &form, &value));
    return value.ms;
}

static void test_utc_when_the_clock_skips_then_forward_by_the_gap(void **state)
{
    struct zone *zone = zone_open("Europe/Berlin");
    assert_int_equal(zone_utc(zone, at("2024-03-31 02:30:00")), at("2024-03-31 01:30:00"));
    assert_int_equal(zone_utc(zone, at("2024-03-31 01:59:59")), at("2024-03-31 00:59:59"));
    assert_int_equal(zone_utc(zone, at("2024-03-31 03:00:00")), at("2024-03-31 01:00:00"));
    zone_destroy(zone);
}

static void test_utc_when_a_time_comes_twice_then_the_first(void **state)
{
    struct zone *zone = zone_open("Europe/Berlin");
    assert_int_equal(zone_utc(zone, at("2024-10-27 02:30:00")), at("2024-10-27 00:30:00"));
    assert_int_equal(zone_utc(zone, at("2024-10-27 03:00:00")), at("2024-10-27 02:00:00"));
    assert_int_equal(zone_local(zone, at("2024-10-27 01:30:00")), at("2024-10-27 02:30:00"));
    zone_destroy(zone);
}

static void test_local_when_far_in_the_future_then_by_cycles(void **state)
{
    struct zone *zone = zone_open("America/New_York");
    assert_int_equal(zone_local(zone, at("2924-07-01 12:00:00")), at("2924-07-01 08:00:00"));
    assert_int_equal(zone_local(zone, at("9999-12-31 23:59:59")), at("9999-12-31 18:59:59"));
    assert_int_equal(zone_utc(zone, at("9999-07-01 08:00:00")), at("9999-07-01 12:00:00"));
    zone_destroy(zone);
}

static void test_open_when_offset_then_fixed(void **state)
{
    static const struct {
        const char *name;
        int64_t minutes;
    } offsets[] = {{"UTC", 0},       {"Z", 0},       {"GMT", 0},          {"+05:30", 330},
                   {"-03:00", -180}, {"GMT+8", 480}, {"UTC-09:30", -570}, {"+0545", 345}};
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        struct zone *zone = zone_open(offsets[i].name);
        assert_non_null(zone);
        assert_int_equal(zone_local(zone, 0), offsets[i].minutes * MS_PER_MINUTE);
        assert_int_equal(zone_utc(zone, offsets[i].minutes * MS_PER_MINUTE), 0);
        zone_destroy(zone);
    }
}

static void test_open_when_no_zone_then_null(void **state)
{
    static const char *const bad[] = {
        "",          "Europe/Nowhere", "../../etc/passwd", "/etc/passwd",
        "tzdata.zi", "Europe",         "+25:00",           "+1:2:3:4:5"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_null(zone_open(bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_when_random_instants_then_as_zoneinfo),
        cmocka_unit_test(test_utc_when_the_clock_skips_then_forward_by_the_gap),
        cmocka_unit_test(test_utc_when_a_time_comes_twice_then_the_first),
        cmocka_unit_test(test_local_when_far_in_the_future_then_by_cycles),
        cmocka_unit_test(test_open_when_offset_then_fixed),
        cmocka_unit_test(test_open_when_no_zone_then_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
